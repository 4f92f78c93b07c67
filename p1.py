import time, warnings
import numpy as np
from scipy.special import expit, logit
from skbounds.kernel_boost import *
n=100
x=np.arange(1,n+1)/n; X=x[:,None]; f=np.abs(x-.5)-.25
opts=dict(kernel="sobolev",fit_intercept=False,step_size=.75)
t0=time.time()
for seed in range(3):
    rng=np.random.default_rng(seed)
    y=f+rng.normal(scale=np.sqrt(.5),size=n)
    t=np.unique(np.round(np.geomspace(1,10000,120)))
    m=EarlyStoppedKernelBoost(stopping=None,max_iter=10000,**opts).fit(X,y)
    err=[np.mean((g-f)**2) for g in m.staged_predict(X,t)]
    print(seed,'L2 best',t[np.argmin(err)],min(err),err[0],err[-1])
    for rule in ["gcv","cp","loo","aicc","discrepancy","theory","validation"]:
        m=EarlyStoppedKernelBoost(stopping=rule,random_state=0,**opts).fit(X,y)
        print('  ',rule,m.n_iter_,np.mean((m.predict(X)-f)**2), m.noise_, m.norm_)
    m=EarlyStoppedKernelBoost(stopping="theory",noise=np.sqrt(.5),norm=np.sqrt(17/16),**opts).fit(X,y)
    print('  known',m.n_iter_,np.mean((m.predict(X)-f)**2))
    for loss,link in (("log_loss",1),("exponential",2)):
        XX=np.repeat(X,5,axis=0); yy=rng.random(5*n)<expit(np.repeat(f,5))
        s=time.time()
        m=EarlyStoppedKernelBoostClassifier(loss=loss,stopping=None,max_iter=10000,**opts).fit(XX,yy)
        err=[np.mean((logit(p[:,1])/link-f/link)**2) for p in m.staged_predict_proba(X,t)]
        print(seed,loss,'best',t[np.argmin(err)],min(err),err[0],err[-1], time.time()-s)
        for rule in ["auto","alo","aic","theory","validation"]:
            s=time.time()
            m=EarlyStoppedKernelBoostClassifier(loss=loss,stopping=rule,random_state=0,**opts).fit(XX,yy)
            print('  ',rule,m.n_iter_,np.mean((m.decision_function(X)-f/link)**2),time.time()-s)
        m=EarlyStoppedKernelBoostClassifier(loss=loss,stopping="theory",norm=np.sqrt(17/16)/link,**opts).fit(XX,yy)
        print('  known',m.n_iter_,np.mean((m.decision_function(X)-f/link)**2))
print(time.time()-t0)
